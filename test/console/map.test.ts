// What is seen on the map and in the list beside it, with one service and one browser.
import './map/agrees.ts'
import './map/crowd.ts'
import './map/right-to-left.ts'
import './map/watch.ts'
