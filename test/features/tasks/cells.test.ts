import { test } from 'tap'
import { boundsOfCells, cellsOf, cellsOver } from '../../../src/features/tasks/cells.ts'
import { seededRandom } from '../../contracts/table-store-rows.ts'

test('all that lies in a cell over a box lies within the bounds of those cells, and all in the box in one', (t) => {
  const random = seededRandom(3)
  const places = Array.from({ length: 300 }, () => ({ lat: random() * 180 - 90, lng: random() * 360 - 180 }))
  // On edges of cells, and at the ends of the earth.
  for (const lng of [-180, -90, 0, 45, 11.25, 179.9999999, 180]) places.push({ lat: 22.5, lng }, { lat: -90, lng })
  let found = 0
  for (let round = 0; round < 300; round += 1) {
    const scale = [1, 0.1, 0.01][round % 3]
    const about = places[round]
    const [west, south] = [Math.max(-180, about.lng - 100 * scale * random()), Math.max(-90, about.lat - 50 * scale)]
    const east = Math.min(180, about.lng + 100 * scale * random())
    const box = { west, south, east, north: Math.min(90, about.lat + 50 * scale * random()) }
    // Every tenth goes around the other way, over the antimeridian.
    const isAcross = round % 10 === 0 && east < 0 && west < 0
    const asked = isAcross ? { ...box, west: 90, east: west } : box
    const cells = new Set(cellsOver(asked))
    const bounds = boundsOfCells(asked)
    for (const { lat, lng } of places) {
      const east360 = isAcross && lng < 0 ? lng + 360 : lng
      const isIn = cellsOf(lat, lng).some((cell) => cells.has(cell))
      const inside = lat >= box.south && lat <= box.north
      const across = isAcross ? lng >= asked.west || lng <= asked.east : lng >= asked.west && lng <= asked.east
      if (inside && across && !isIn) t.fail(`${lat} ${lng} is in the box ${JSON.stringify(asked)} and in no cell`)
      if (!isIn) continue
      found += 1
      const isWithin = lat >= bounds.south && lat <= bounds.north && east360 >= bounds.west && east360 <= bounds.east
      if (!isWithin) t.fail(`${lat} ${lng} is beyond ${JSON.stringify(bounds)} of ${JSON.stringify(asked)}`)
    }
  }
  t.ok(found > 1_000, `${found} found`)
  t.end()
})
