// Whether the keys are explained just now.

class KeyHelp {
  isOpen = $state(false)
}

export const keyHelp = new KeyHelp()
