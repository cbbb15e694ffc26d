// What a dispatcher draws, asks and looks back at, with one service and one browser.
import './dispatching/answers.ts'
import './dispatching/fences.ts'
import './dispatching/late-answers.ts'
import './dispatching/look-back.ts'
import './dispatching/lost-answers.ts'
import './dispatching/lost-changes.ts'
import './dispatching/names.ts'
