// The colours of the map, light and dark.
import type { Color, TrackerColors } from './tracker-layer.ts'

export type Theme = 'light' | 'dark'

export interface Palette {
  ground: string
  /** Colour of less important labels. */
  faint: string
  water: string
  border: string
  road: string
  text: string
  halo: string
  fence: string
  draft: string
  trail: string
  trackers: TrackerColors
}

const rgb = (hex: string): Color => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255) as Color

export const PALETTES: { [theme in Theme]: Palette } = {
  light: {
    ground: '#f3f1ec',
    faint: '#6d6675',
    water: '#bcd7e8',
    border: '#a59fb3',
    road: '#b9b1a4',
    text: '#3d4653',
    halo: '#ffffff',
    fence: '#1d5fbf',
    draft: '#a21caf',
    trail: '#c2410c',
    trackers: {
      states: ['#0a7a4b', '#2457c5', '#a86200', '#6b7280'].map(rgb),
      edge: rgb('#ffffff'),
      selected: rgb('#c2410c'),
    },
  },
  dark: {
    ground: '#17202c',
    faint: '#8796ab',
    water: '#0c1622',
    border: '#4c5a70',
    road: '#3c536f',
    text: '#c6d2e0',
    halo: '#0d1520',
    fence: '#56b7f5',
    draft: '#e879f9',
    trail: '#fb923c',
    trackers: {
      states: ['#34d399', '#7aa7ff', '#fbbf24', '#a3adbb'].map(rgb),
      edge: rgb('#0d1520'),
      selected: rgb('#fb923c'),
    },
  },
}
