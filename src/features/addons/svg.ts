import { Failure } from '../../kernel/errors.ts'

const SHAPES = ['path', 'rect', 'circle', 'ellipse', 'line', 'polyline', 'polygon', 'text', 'tspan']
const FRAMES = ['svg', 'g', 'defs', 'title', 'desc', 'clipPath', 'mask', 'linearGradient', 'radialGradient', 'stop']
/** Attributes that cannot load, run or link to anything: no `href`, `style` or events. */
const ATTRIBUTES = [
  ...['id', 'viewBox', 'xmlns', 'width', 'height', 'preserveAspectRatio', 'role', 'aria-label', 'version'],
  ...[
    'x',
    'y',
    'x1',
    'y1',
    'x2',
    'y2',
    'cx',
    'cy',
    'r',
    'rx',
    'ry',
    'fx',
    'fy',
    'dx',
    'dy',
    'd',
    'points',
    'transform',
  ],
  ...['fill', 'fill-rule', 'fill-opacity', 'opacity', 'color', 'clip-path', 'clip-rule', 'mask', 'offset'],
  ...['stroke', 'stroke-width', 'stroke-linecap', 'stroke-linejoin', 'stroke-miterlimit', 'stroke-dasharray'],
  ...['stroke-dashoffset', 'stroke-opacity', 'stop-color', 'stop-opacity', 'gradientUnits', 'gradientTransform'],
  ...['font-family', 'font-size', 'font-weight', 'text-anchor'],
]
/** A reference into the picture itself. */
const LOCAL = /^url\(#[\w-]+\)$/

/** The picture without anything that could run, load or link. @throws Failure unsupported_type if it is no SVG */
export const harmlessSvg = async (bytes: Uint8Array): Promise<Buffer> => {
  // Few installations ever need it, and every start would load it.
  const { default: sanitizeHtml } = await import('sanitize-html')
  const clean = sanitizeHtml(decoded(bytes), {
    allowedTags: [...SHAPES, ...FRAMES],
    allowedAttributes: { '*': ATTRIBUTES },
    // These elements are removed with their content.
    nonTextTags: ['script', 'style', 'foreignObject', 'iframe', 'textarea', 'option'],
    transformTags: { '*': (tagName, attribs) => ({ tagName, attribs: withoutLinks(attribs) }) },
    parser: { xmlMode: true, lowerCaseTags: false, lowerCaseAttributeNames: false, decodeEntities: true },
    nestingLimit: 50,
  })
  // Remains of a document type surround the root.
  const root = /<svg[\s>][\s\S]*<\/svg>/.exec(clean)?.[0]
  if (root === undefined) throw new Failure('unsupported_type', { message: 'The icon is no SVG.' })
  const isNamed = /^<svg[^>]*\sxmlns="/.test(root)
  return Buffer.from(isNamed ? root : root.replace('<svg', '<svg xmlns="http://www.w3.org/2000/svg"'))
}

const withoutLinks = (attributes: { [name: string]: string }): { [name: string]: string } =>
  Object.fromEntries(
    Object.entries(attributes).filter(
      ([name, value]) =>
        (name === 'xmlns' ? value === 'http://www.w3.org/2000/svg' : true) &&
        (!/url\s*\(|\\/i.test(value) || LOCAL.test(value.trim())),
    ),
  )

const decoded = (bytes: Uint8Array): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Failure('unsupported_type', { message: 'The icon is no SVG in UTF-8.' })
  }
}

/** Whether the bytes look like text with an SVG in it; anything else is a bitmap or no picture. */
export const looksLikeSvg = (bytes: Uint8Array): boolean =>
  /^\uFEFF?\s*<(\?xml|!--|!DOCTYPE|svg)/i.test(Buffer.from(bytes.subarray(0, 200)).toString())
