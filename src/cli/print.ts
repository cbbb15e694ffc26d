/** Prints what a command has to say; answers the exit code of success. */
export const print = (text: string): number => {
  process.stdout.write(text)
  return 0
}
