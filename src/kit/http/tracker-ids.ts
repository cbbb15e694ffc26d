import { invalid } from '../../kernel/errors.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The ids in the parameter `trackerId`, which are separated by commas. @throws Failure invalid for what is no UUID. */
export const trackerIdsOf = (text: string): string[] => {
  const ids = text.split(',').map((id) => id.trim().toLowerCase())
  if (!ids.every((id) => UUID.test(id)))
    throw invalid('/trackerId', 'must be the id of a tracker, or several separated by commas')
  return ids
}
