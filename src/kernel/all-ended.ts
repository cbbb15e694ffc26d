/**
 * Answers of work that runs at once. Where some of it fails, the first failure in the order of the list is thrown, as if
 * it had run one after the other; nothing is still under way then.
 */
export const allEnded = async <Work extends readonly unknown[] | []>(
  work: Work,
): Promise<{ -readonly [Index in keyof Work]: Awaited<Work[Index]> }> => {
  const ended = await Promise.allSettled(work)
  const answers = ended.map((one) => {
    if (one.status === 'rejected') throw one.reason
    return one.value
  })
  return answers as { -readonly [Index in keyof Work]: Awaited<Work[Index]> }
}
