import { polygonContains } from './polygon.ts'
import { metersFrom } from './reach.ts'
import { type Part, partSlabs, type Shape } from './shape.ts'
import { slabAt } from './slabs.ts'

const PARTS_WITHOUT_SLABS = 8

/** Is the position inside the shape or on its boundary? Exact for polygons; the reference that the index must agree with. */
export const shapeContains = (shape: Shape, lngE7: number, latE7: number): boolean => {
  const { parts } = shape
  if (parts.length <= PARTS_WITHOUT_SLABS) {
    for (let i = 0; i < parts.length; i++)
      if (inBoxes(parts[i]!, lngE7, latE7) && partContains(parts[i]!, lngE7, latE7)) return true
    return false
  }
  const slabs = partSlabs(shape)
  const slab = slabAt(slabs, lngE7)
  for (let k = slabs.first[slab]!, end = slabs.first[slab + 1]!; k < end; k++) {
    const part = parts[slabs.of[k]!]!
    if (inBoxes(part, lngE7, latE7) && partContains(part, lngE7, latE7)) return true
  }
  return false
}

export const partContains = (part: Part, lngE7: number, latE7: number): boolean =>
  part.kind === 'polygon' ? polygonContains(part, lngE7, latE7) : metersFrom(part, lngE7, latE7) <= part.meters

const inBoxes = ({ boxes }: Part, lngE7: number, latE7: number): boolean => {
  for (let at = 0; at < boxes.length; at += 4) {
    if (lngE7 >= boxes[at]! && lngE7 <= boxes[at + 2]! && latE7 >= boxes[at + 1]! && latE7 <= boxes[at + 3]!)
      return true
  }
  return false
}
