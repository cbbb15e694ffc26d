import { generateSync } from 'otplib'

/** What an app shows at a time, ms since the epoch. */
export const codeAt = (secret: string, now: number): string => generateSync({ secret, epoch: Math.floor(now / 1000) })
