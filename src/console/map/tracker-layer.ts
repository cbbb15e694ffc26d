// Draws all trackers in one call: positions glide in the shader, so that nothing is computed between messages.
import type { CustomLayerInterface, CustomRenderMethodInput, Map as MapLibreMap } from 'maplibre-gl'
import { type Fleet, OFFLINE } from '../live/fleet.ts'
import { FRAGMENT, VERTEX } from './tracker-shaders.ts'

const FLOATS = 8
const GLIDE_MS = 900
/** Flags of an instance. */
const SELECTED = 1
const NO_HEADING = 2

export type Color = [red: number, green: number, blue: number]

export interface TrackerColors {
  /** By state. */
  states: Color[]
  edge: Color
  selected: Color
}

/** Coordinates of the map's square world, 0 to 1. */
export const mercatorX = (lng: number): number => (lng + 180) / 360
export const mercatorY = (lat: number): number =>
  0.5 - Math.log(Math.tan(Math.PI / 4 + (Math.max(-85.0511, Math.min(85.0511, lat)) * Math.PI) / 360)) / (2 * Math.PI)

export class TrackerLayer implements CustomLayerInterface {
  id = 'trackers'
  type = 'custom' as const
  renderingMode = '2d' as const
  /** Number of trackers drawn last, for tests and screen readers. */
  drawn = 0
  #map: MapLibreMap | undefined
  #gl: WebGL2RenderingContext | undefined
  #program: WebGLProgram | undefined
  #shape: WebGLVertexArrayObject | undefined
  #instances: WebGLBuffer | undefined
  #data = new Float32Array(FLOATS * 256)
  #reference: [number, number] = [0.5, 0.5]
  #isFresh = false
  #glideUntil = 0
  #colors: TrackerColors
  #glideMs: number

  constructor(colors: TrackerColors, isStill: boolean) {
    this.#colors = colors
    this.#glideMs = isStill ? 0 : GLIDE_MS
  }

  set colors(colors: TrackerColors) {
    this.#colors = colors
    this.#map?.triggerRepaint()
  }

  /** Sets the visible slots of the fleet, the selected one last. */
  show(fleet: Fleet, slots: readonly number[], selected: number | undefined, now: number): void {
    if (this.#data.length < slots.length * FLOATS) this.#data = new Float32Array(slots.length * FLOATS * 2)
    if (slots.length > 0) this.#reference = [mercatorX(fleet.lng[slots[0]!]!), mercatorY(fleet.lat[slots[0]!]!)]
    let last = 0
    let at = 0
    for (const slot of slots) {
      this.#write(at, fleet, slot, slot === selected, now)
      at += FLOATS
      if (fleet.movedAt[slot]! > last) last = fleet.movedAt[slot]!
    }
    this.drawn = slots.length
    this.#isFresh = true
    this.#glideUntil = last + this.#glideMs
    this.#map?.triggerRepaint()
  }

  /** End positions of the drawn glides, as parts of the square world, in the order in which they were shown. */
  places(): [x: number, y: number][] {
    const [x, y] = this.#reference
    return Array.from({ length: this.drawn }, (_, i) => {
      const at = i * FLOATS
      return [x + this.#data[at + 2]!, y + this.#data[at + 3]!]
    })
  }

  onAdd(map: MapLibreMap, gl: WebGLRenderingContext | WebGL2RenderingContext): void {
    this.#map = map
    this.#gl = gl as WebGL2RenderingContext
    this.#program = programOf(this.#gl)
    this.#shape = this.#gl.createVertexArray()
    this.#instances = this.#gl.createBuffer()
    this.#isFresh = true
    describe(this.#gl, this.#shape, this.#instances)
  }

  render(gl: WebGLRenderingContext | WebGL2RenderingContext, input: CustomRenderMethodInput): void {
    const [context, map, program] = [gl as WebGL2RenderingContext, this.#map, this.#program]
    if (map === undefined || program === undefined || this.drawn === 0) return
    context.useProgram(program)
    context.bindVertexArray(this.#shape!)
    if (this.#isFresh) {
      context.bindBuffer(context.ARRAY_BUFFER, this.#instances!)
      context.bufferData(context.ARRAY_BUFFER, this.#data.subarray(0, this.drawn * FLOATS), context.DYNAMIC_DRAW)
      this.#isFresh = false
    }
    const now = performance.now()
    this.#setUniforms(context, program, map, input, now)
    context.enable(context.BLEND)
    context.blendFunc(context.ONE, context.ONE_MINUS_SRC_ALPHA)
    context.disable(context.DEPTH_TEST)
    context.drawArraysInstanced(context.TRIANGLE_STRIP, 0, 4, this.drawn)
    context.bindVertexArray(null)
    if (now < this.#glideUntil) map.triggerRepaint()
  }

  #write(at: number, fleet: Fleet, slot: number, isSelected: boolean, now: number): void {
    const [x, y] = this.#reference
    const data = this.#data
    data[at] = mercatorX(fleet.fromLng[slot]!) - x
    data[at + 1] = mercatorY(fleet.fromLat[slot]!) - y
    data[at + 2] = mercatorX(fleet.lng[slot]!) - x
    data[at + 3] = mercatorY(fleet.lat[slot]!) - y
    // Seconds since the page was opened: a float holds them to a millisecond for hours.
    data[at + 4] = now - fleet.movedAt[slot]! > GLIDE_MS ? -10 : fleet.movedAt[slot]! / 1000
    const heading = fleet.heading[slot]!
    data[at + 5] = Number.isNaN(heading) ? 0 : (heading * Math.PI) / 180
    data[at + 6] = Math.min(fleet.state[slot]!, OFFLINE)
    data[at + 7] = (isSelected ? SELECTED : 0) + (Number.isNaN(heading) ? NO_HEADING : 0)
  }

  #setUniforms(
    gl: WebGL2RenderingContext,
    program: WebGLProgram,
    map: MapLibreMap,
    input: CustomRenderMethodInput,
    now: number,
  ): void {
    const at = (name: string): WebGLUniformLocation | null => gl.getUniformLocation(program, name)
    const matrix = translated(input.defaultProjectionData.mainMatrix as ArrayLike<number>, ...this.#reference)
    gl.uniformMatrix4fv(at('matrix'), false, matrix)
    const { clientWidth, clientHeight } = map.getCanvas()
    gl.uniform2f(at('pixel'), 2 / clientWidth, 2 / clientHeight)
    gl.uniform1f(at('now'), now / 1000)
    gl.uniform1f(at('glide'), Math.max(0.001, this.#glideMs / 1000))
    gl.uniform1f(at('bearing'), (map.getBearing() * Math.PI) / 180)
    gl.uniform1f(at('size'), Math.min(13, 6 + map.getZoom() * 0.5))
    gl.uniform3fv(at('colors'), this.#colors.states.flat())
    gl.uniform3fv(at('edge'), this.#colors.edge)
    gl.uniform3fv(at('selectedColor'), this.#colors.selected)
  }
}

/** The matrix translated to the reference point, computed in doubles: floats are too coarse for a street. */
const translated = (m: ArrayLike<number>, x: number, y: number): Float32Array => {
  const out = new Float32Array(16)
  for (let i = 0; i < 12; i++) out[i] = m[i]!
  for (let i = 0; i < 4; i++) out[12 + i] = m[i]! * x + m[4 + i]! * y + m[12 + i]!
  return out
}

const describe = (gl: WebGL2RenderingContext, shape: WebGLVertexArrayObject, instances: WebGLBuffer): void => {
  gl.bindVertexArray(shape)
  gl.bindBuffer(gl.ARRAY_BUFFER, instances)
  const attributes = [
    [0, 4, 0],
    [1, 4, 16],
  ] as const
  for (const [location, size, offset] of attributes) {
    gl.enableVertexAttribArray(location)
    gl.vertexAttribPointer(location, size, gl.FLOAT, false, FLOATS * 4, offset)
    gl.vertexAttribDivisor(location, 1)
  }
  gl.bindVertexArray(null)
}

const programOf = (gl: WebGL2RenderingContext): WebGLProgram => {
  const program = gl.createProgram()
  for (const [type, source] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ] as const) {
    const shader = gl.createShader(type)!
    gl.shaderSource(shader, source)
    gl.compileShader(shader)
    gl.attachShader(program, shader)
  }
  gl.linkProgram(program)
  if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost())
    throw new Error(`the layer of trackers cannot be drawn: ${gl.getProgramInfoLog(program)}`)
  return program
}
