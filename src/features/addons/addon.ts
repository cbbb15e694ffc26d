import type { JsonSchema } from '../../kernel/json.ts'
import { integer, list, newName, object, optional, text, withDefault } from '../../kernel/schema.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { defineResource } from '../../kit/resource/resource.ts'
import type { Services } from '../../kit/services.ts'

const TEXT = text({ max: 300 })
const stored = {
  name: text({ max: 104 }),
  contentType: TEXT,
  size: integer({ min: 0 }),
  /** Value of the `integrity` attribute of a script element. */
  integrity: TEXT,
  /** Path of this version of the file; its content never changes. */
  path: TEXT,
}
const url: { schema: JsonSchema } = { schema: { type: 'string', description: 'Where a page loads it from.' } }

/** A file as stored in events. */
export interface AddonFile {
  name: string
  contentType: string
  size: number
  integrity: string
  path: string
}

/** Scripts and an icon that customers add to pages. Each upload is another version; earlier versions stay readable. */
export const addon = defineResource({
  noun: 'addon',
  plural: 'addons',
  tag: 'Add-ons',
  // The other routes are written by hand: their bodies are forms.
  verbs: ['list', 'read', 'delete'],
  fields: { name: newName({ max: 100 }) },
  readOnly: {
    files: withDefault(list(object({ ...stored, url }), { max: 20 }), []),
    icon: optional(object({ ...stored, url })),
    frameUrl: url,
  },
  permissions: { view: 'view/addon', edit: 'edit/addon' },
  table: { indexes: { range: ['name'], equality: ['name'], text: ['name'] } },
  example: {
    name: 'Route colors',
    files: [
      {
        name: 'main.js',
        contentType: 'text/javascript; charset=utf-8',
        size: 20,
        integrity: 'sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC',
        path: '/api/v3/addon/0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a/files/5f8f04f6a3a892aaabbddb6cf273894e.main.js',
        url: '/api/v3/addon/0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a/files/5f8f04f6a3a892aaabbddb6cf273894e.main.js',
      },
    ],
    frameUrl: '/api/v3/addon/0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a/files/index.html',
  },
})

export interface AddonServices extends ResourceServices, Pick<Services, 'files'> {
  /** Separate origin, such as `https://addons.example.com`; undefined: scripts run in documents of opaque origin. */
  origin?: string
}
