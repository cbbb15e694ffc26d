import { createHmac } from 'node:crypto'

const SECRET_PREFIX = 'whsec_'

/**
 * The headers of Standard Webhooks 1.0 (github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md):
 * HMAC-SHA256 over `id.timestamp.body` with the bytes behind `whsec_`, one signature for each secret.
 * @param timestampS when the attempt is made, whole seconds since the epoch
 */
export const signWebhook = (
  webhookId: string,
  timestampS: number,
  body: string,
  secrets: readonly string[],
): { [header: string]: string } => ({
  'webhook-id': webhookId,
  'webhook-timestamp': String(timestampS),
  'webhook-signature': secrets.map((secret) => signature(webhookId, timestampS, body, secret)).join(' '),
})

const signature = (webhookId: string, timestampS: number, body: string, secret: string): string => {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${webhookId}.${timestampS}.${body}`).digest('base64')}`
}
