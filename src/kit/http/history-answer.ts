import type { HeldPage } from './held-page.ts'
import { nextLink } from './next-link.ts'
import { FEATURE_COLLECTION } from './geojson-schema.ts'
import type { Answer, Reply } from './route.ts'

/** Formats in which points and transitions are answered. */
export type HistoryFormat = 'json' | 'geojson' | 'gpx' | 'csv' | 'ndjson' | 'parquet'

interface ServedFormat {
  contentType: string
  /** Without the dot. */
  fileExtension: string
}

export const HISTORY_FORMATS: { [format in HistoryFormat]: ServedFormat } = {
  json: { contentType: 'application/json', fileExtension: 'json' },
  geojson: { contentType: 'application/geo+json', fileExtension: 'geojson' },
  gpx: { contentType: 'application/gpx+xml', fileExtension: 'gpx' },
  csv: { contentType: 'text/csv; charset=utf-8', fileExtension: 'csv' },
  ndjson: { contentType: 'application/x-ndjson', fileExtension: 'ndjson' },
  parquet: { contentType: 'application/vnd.apache.parquet', fileExtension: 'parquet' },
}

/** The media types beside that of `json`, for the documentation. */
export const FURTHER_FORMATS: Answer['alsoAs'] = Object.fromEntries(
  Object.entries(HISTORY_FORMATS)
    .filter(([format]) => format !== 'json')
    .map(([format, { contentType }]) => [
      contentType.split(';')[0],
      format === 'geojson' ? FEATURE_COLLECTION : undefined,
    ]),
)

/** Rows of `json` where no limit is given; the other formats have no default limit. */
export const JSON_LIMIT = 500

export interface HistoryAnswer extends HeldPage, ServedFormat {}

/** The answer to a GET of that path and query, with a link to the next page; all but `json` as a file of that name. */
export const historyReply = (
  { contentType, fileExtension, nextCursor, body }: HistoryAnswer,
  path: string,
  query: object,
  fileName: string,
): Reply => {
  const headers: { [name: string]: string } = { 'content-type': contentType }
  if (nextCursor !== null) headers.link = nextLink(path, { ...query }, nextCursor)
  if (fileExtension !== 'json') headers['content-disposition'] = `attachment; filename="${fileName}.${fileExtension}"`
  return { headers, stream: body }
}
