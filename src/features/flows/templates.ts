import type { JsonObject } from '../../kernel/json.ts'

/** A flow that every organization begins with. */
export interface FlowTemplate {
  key: string
  body: JsonObject
}

const note = { id: 'note', type: 'text', label: 'Note', max: 2000 }
const photos = { id: 'photos', type: 'photo', label: 'Photos', filesMax: 10 }

export const FLOW_TEMPLATES: readonly FlowTemplate[] = [
  {
    key: 'delivery',
    body: {
      name: 'Delivery',
      steps: [
        {
          id: 'handover',
          name: 'Handover',
          components: [
            { id: 'receiver', type: 'text', label: 'Received by', required: true, max: 200 },
            { id: 'parcels', type: 'number', label: 'Parcels', min: 0 },
            { id: 'signature', type: 'signature', label: 'Signature', filesMax: 1 },
            photos,
            note,
          ],
        },
      ],
    },
  },
  {
    key: 'pickup',
    body: {
      name: 'Pickup',
      steps: [
        {
          id: 'collection',
          name: 'Collection',
          components: [
            { id: 'parcels', type: 'number', label: 'Parcels', required: true, min: 0 },
            { id: 'barcode', type: 'barcode', label: 'Barcode', max: 200 },
            photos,
            note,
          ],
        },
      ],
    },
  },
  {
    key: 'inspection',
    body: {
      name: 'Inspection',
      steps: [
        {
          id: 'findings',
          name: 'Findings',
          components: [
            { id: 'result', type: 'option', label: 'Result', options: ['passed', 'failed', 'repeat'], required: true },
            { id: 'defects', type: 'text', label: 'Defects', max: 5000 },
            photos,
          ],
        },
        {
          id: 'end',
          name: 'End',
          components: [{ id: 'signature', type: 'signature', label: 'Signature', filesMax: 1 }],
        },
      ],
    },
  },
  {
    key: 'visit',
    body: {
      name: 'Visit',
      steps: [
        {
          id: 'report',
          name: 'Report',
          components: [
            { id: 'outcome', type: 'option', label: 'Outcome', options: ['done', 'nobody there', 'postponed'] },
            note,
            { id: 'nextVisit', type: 'date', label: 'Next visit' },
          ],
        },
      ],
    },
  },
]
