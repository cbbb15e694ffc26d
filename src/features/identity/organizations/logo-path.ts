export const LOGOS = 'logos/'

export const logoKey = (organizationId: string, name: string): string => `${LOGOS}${organizationId}/${name}`

/** Path of a logo; the value of `logo`. */
export const logoPath = (organizationId: string, name: string): string =>
  `/api/v3/organization/${organizationId}/logo/${name}`
