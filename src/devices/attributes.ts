/** Meaning of an attribute's value, for the table in docs/devices.md. */
interface AttributeMeaning {
  type: 'boolean' | 'number' | 'text'
  unit?: string
  meaning: string
}

const bool = (meaning: string): AttributeMeaning => ({ type: 'boolean', meaning })
const text = (meaning: string): AttributeMeaning => ({ type: 'text', meaning })
const number = (meaning: string, unit?: string): AttributeMeaning => ({ type: 'number', unit, meaning })

/**
 * The one table of attribute names for devices of every protocol, for values beside the position, so that an automation
 * reads `point.attributes.ignition` whatever the hardware is.
 */
export const ATTRIBUTES = {
  activity: text('what the device takes its carrier to do: `driving`, `walking`, `still`, …'),
  adc1: number('analog input 1', 'V'),
  adc2: number('analog input 2', 'V'),
  adc3: number('analog input 3', 'V'),
  adc4: number('analog input 4', 'V'),
  alarm: text('why the device is worried: see below'),
  armed: bool('the alarm system is armed'),
  batteryVoltage: number("voltage of the device's own battery", 'V'),
  charging: bool('the battery is being charged, or external power is connected'),
  connection: text('how it is online: `wifi`, `mobile`, `offline`'),
  coolantTemperature: number('temperature of the coolant', '°C'),
  deviceTemperature: number('temperature inside the device', '°C'),
  door: bool('a door is open'),
  driverId: text('what identified the driver: iButton, RFID or card'),
  engineHours: number('time that the engine has run', 'h'),
  engineLoad: number('load of the engine', '%'),
  event: text("the protocol's own word or number for what made the device send this point"),
  fuel: number('fuel in the tank', '%'),
  fuelRate: number('fuel consumption', 'l/h'),
  fuelUsed: number('fuel used since the engine was new', 'l'),
  fuelVolume: number('fuel in the tank', 'l'),
  hdop: number('horizontal dilution of precision'),
  humidity: number('relative humidity', '%'),
  ignition: bool('the ignition is on'),
  input1: bool('digital input 1'),
  input2: bool('digital input 2'),
  input3: bool('digital input 3'),
  input4: bool('digital input 4'),
  mock: bool('the phone says that an app made this position up'),
  motion: bool('the device moves'),
  network: text('name of the wireless network that it is connected to'),
  odometer: number('distance since the device or vehicle was new', 'm'),
  output1: bool('digital output 1'),
  output2: bool('digital output 2'),
  pdop: number('position dilution of precision'),
  power: number('voltage of the external supply', 'V'),
  powerCut: bool('external power is cut'),
  priority: number('how urgent the device takes the record to be, 0 to 2'),
  region: text("the client's own zone that was entered or left; it is no geofence of this service"),
  rpm: number('revolutions of the engine', '1/min'),
  rssi: number('strength of the radio signal', 'dBm'),
  satellites: number('satellites that the fix is made of'),
  signal: number('strength of the mobile network, 0 to 5'),
  steps: number('steps that the phone counted'),
  temperature1: number('temperature of sensor 1', '°C'),
  temperature2: number('temperature of sensor 2', '°C'),
  temperature3: number('temperature of sensor 3', '°C'),
  temperature4: number('temperature of sensor 4', '°C'),
  throttle: number('position of the accelerator', '%'),
  trackerLabel: text('the two letters that OwnTracks shows'),
  tripDistance: number('distance of the current trip, as the device counts it', 'm'),
  vehicleSpeed: number('speed as the vehicle itself says', 'm/s'),
  vin: text('identification number of the vehicle'),
} satisfies { [name: string]: AttributeMeaning }

export type AttributeName = keyof typeof ATTRIBUTES

/** Values of `alarm`. */
export const ALARMS = [
  'accident',
  'door',
  'fall',
  'fault',
  'fuelLeak',
  'geofenceEnter',
  'geofenceExit',
  'hardAcceleration',
  'hardBraking',
  'hardCornering',
  'idle',
  'jamming',
  'lowBattery',
  'lowPower',
  'movement',
  'overspeed',
  'powerCut',
  'powerOff',
  'powerOn',
  'removing',
  'sos',
  'tampering',
  'temperature',
  'tow',
  'unplugged',
  'vibration',
] as const

export type Alarm = (typeof ALARMS)[number]
