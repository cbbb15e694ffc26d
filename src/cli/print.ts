/** Prints a command's output; returns the exit code of success. */
export const print = (text: string): number => {
  process.stdout.write(text)
  return 0
}
