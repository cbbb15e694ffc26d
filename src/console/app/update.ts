// Checks whether the service has another version of the console than the open one.

/** Compares with the script that the service names now; false while it cannot be reached. */
export const isOutdated = async (): Promise<boolean> => {
  const own = document.querySelector<HTMLScriptElement>('script[type=module]')?.getAttribute('src')
  const answer = await fetch('/', { cache: 'no-store' }).catch(() => undefined)
  if (!own || answer?.ok !== true) return false
  return !(await answer.text()).includes(own)
}
