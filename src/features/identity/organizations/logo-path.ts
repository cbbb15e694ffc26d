/** Beginning of the keys of all logos in the file store. */
export const LOGOS = 'logos/'

export const logoKey = (organizationId: string, name: string): string => `${LOGOS}${organizationId}/${name}`

/** Where a logo is read; the value of `logo`. */
export const logoPath = (organizationId: string, name: string): string =>
  `/api/v3/organization/${organizationId}/logo/${name}`
