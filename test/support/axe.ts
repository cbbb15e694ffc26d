import axeCore from 'axe-core'
import type { Page } from 'playwright-core'
import type { Json } from './service.ts'

/** The page has no frames, no media, and styles of its own alone. */
const OPTIONS = { resultTypes: ['violations'], iframes: false, preload: false, selectors: false }

/** What axe finds wrong on a page, a line each. Its code comes by the debugger, which the content policy does not concern. */
export const axe = async (page: Page): Promise<string[]> => {
  // To load its code costs more than to run it.
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(axeCore.source)
  const { violations } = (await page.evaluate(`axe.run(document, ${JSON.stringify(OPTIONS)})`)) as Json
  return violations.flatMap(({ id, nodes }: Json) => nodes.map(({ html }: Json) => `${id}: ${html.slice(0, 160)}`))
}
