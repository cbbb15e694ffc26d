// Whether the help for keys is open.

class KeyHelp {
  isOpen = $state(false)
}

export const keyHelp = new KeyHelp()
