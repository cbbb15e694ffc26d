import axeCore from 'axe-core'
import type { Page } from 'playwright-core'
import type { Json } from './service.ts'

/** What axe finds wrong on a page, a line each. Its code comes by the debugger, which the content policy does not concern. */
export const axe = async (page: Page): Promise<string[]> => {
  await page.evaluate(axeCore.source)
  const { violations } = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as Json
  return violations.flatMap(({ id, nodes }: Json) => nodes.map(({ html }: Json) => `${id}: ${html.slice(0, 160)}`))
}
