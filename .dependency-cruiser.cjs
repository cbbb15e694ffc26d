/** The direction of imports, as docs/architecture.md draws it. Type imports count. */
const forbid = (name, comment, from, to) => ({ name, severity: 'error', comment, from, to })
const ENGINE = '^src/engines/(?!clickhouse-sql/)[^/]+/'
const PORT = '^src/engines/[^/]+\\.ts$'
const ROLE = '^src/roles/(api|ingress|live|projector|matcher|dispatcher|jobs)\\.ts$'
/** What a feature says of itself, and its live channel: they name parts that stand elsewhere. */
const DECLARES = '^src/features/[^/]+/(feature|live-feed)\\.ts$'
const ROOTS = '^src/(main|app|open-engines)\\.ts$|^src/cli/|^test/|^bench/'

module.exports = {
  forbidden: [
    forbid('no-cycles', 'a cycle of types is a design cycle too', {}, { circular: true }),
    forbid('devices-are-decoders', 'an adapter of a protocol is handed bytes and time: no clock, no store, no socket', { path: '^src/devices/' }, { pathNot: '^src/devices/|(^|node_modules/)tweetnacl/' }),
    forbid('decoders-are-strangers', 'protocols share what stands beside them', { path: '^src/devices/([^/]+)/' }, { path: '^src/devices/[^/]+/', pathNot: '^src/devices/$1/' }),
    forbid('no-orphans', 'a file that nobody imports is dead or unwired', { orphan: true, pathNot: '\\.(test|bench)\\.ts$|^test/|^bench/|worker\\.ts$|^src/web/.*\\.js$|^src/console/(main\\.ts|globals\\.d\\.ts)$' }, {}),
    forbid('kernel-is-the-floor', 'the kernel stays liftable', { path: '^src/kernel/' }, { pathNot: '^src/kernel/' }),
    forbid('geo-is-a-library', 'geo knows shapes, not the product', { path: '^src/geo/' }, { pathNot: '^src/geo/|(^|node_modules/)(rbush|robust-predicates|@types/geojson|geojson|@types/rbush)' }),
    forbid('planner-is-a-library', 'the planner knows tasks and vehicles, not the product', { path: '^src/planner/' }, { pathNot: '^src/planner/' }),
    forbid('engines-are-wired-once', 'only the composition root names an engine', { pathNot: `${ENGINE}|^src/(app|open-engines)\\.ts$|^test/|^bench/` }, { path: ENGINE }),
    forbid('engines-see-their-port', 'an engine knows no product', { path: ENGINE }, { path: '^(src|projections)/', pathNot: '^src/(kernel/|engines/)' }),
    forbid('drivers-stay-in-engines', 'a driver is an engine\'s own business', { pathNot: `${ENGINE}|^test/|^bench/` }, { path: '(^|node_modules/)(lmdb|redis|chdb|nodemailer|@clickhouse/|@eventstore/|@aws-sdk/)' }),
    forbid('uws-stays-in-ingress', 'one folder knows the server', { pathNot: '^src/ingress/|^test/|^bench/' }, { path: '(^|node_modules/)(uWebSockets|@btc-vision/|@uwsjs/)' }),
    forbid('kit-sees-ports', 'a kit that knows a feature is a base class', { path: '^src/kit/' }, { path: '^(src|projections)/', pathNot: `^src/(kit|kernel|geo)/|${PORT}` }),
    forbid('resources-stand-on-the-kit', 'all else of the kit serves without them', { path: '^src/kit/', pathNot: '^src/kit/resource/' }, { path: '^src/kit/resource/' }),
    forbid('commands-know-no-consumer', 'who writes does not know who follows, nor the other way', { path: '^src/kit/(commands|consumers)/' }, { path: '^src/kit/(commands|consumers)/', pathNot: '^src/kit/$1/' }),
    forbid('features-are-strangers', 'features see facts, rows and how they are shown of others, never decisions or routes', { path: '^src/features/([^/]+)/', pathNot: '/feature\\.ts$' }, { path: '^src/features/', pathNot: '^src/features/$1/|/(events|views|schemas)\\.ts$' }),
    forbid('a-feature-is-listed-once', 'product.ts is the list; nothing else names a feature as a whole', { pathNot: '^src/product\\.ts$' }, { path: '^src/features/[^/]+/feature\\.ts$' }),
    forbid('a-feature-names-no-route-of-others', 'routes of a feature are its own', { path: '^src/features/([^/]+)/feature\\.ts$' }, { path: '^src/features/.+(/|-)(api|routes?)\\.ts$', pathNot: '^src/features/$1/' }),
    forbid('a-feature-knows-no-role', 'a feature says what it has; where it runs is decided elsewhere', { path: DECLARES }, { path: '^src/(roles|operations|ingress|cli|app|product|config)' }),
    forbid('the-list-is-walked-from-above', 'parts do not know the list that they stand in', { pathNot: '^src/(roles|operations|cli|product-parts)|^test/|^bench/' }, { path: '^src/product(-parts)?\\.ts$' }),
    forbid('features-look-down', 'a feature serves, it does not run', { path: '^src/features/', pathNot: DECLARES }, { path: '^(src/(processes|reactors|live|ingress|operations|cli|app|config|feature\\.ts)|projections)' }),
    forbid('readers-see-facts', 'a reader sees events, views and a status, never decisions', { path: '^(projections|src/(live|ingress))/' }, { path: '^src/features/', pathNot: '/(events|views|schemas|status)\\.ts$' }),
    forbid('projections-write-rows-only', 'a projection that issues a command breaks replay', { path: '^projections/' }, { path: '^src/(kit/(commands/(handle-command|load-state)|resource/)|reactors|live|ingress|cli|app|config)' }),
    forbid('processes-call-no-route', 'a process writes through the decisions of features', { path: '^src/processes/' }, { path: ['^src/features/.+(/|-)api\\.ts$', '^src/features/.+(/|-)routes?\\.ts$'] }),
    forbid('processes-decide-and-write', 'a process writes streams by the decisions of features, no rows', { path: '^src/processes/' }, { path: '^(src|projections)/', pathNot: `^src/(processes|features|kit|kernel)/|${PORT}` }),
    forbid('readers-see-open-processes', 'what is open is all that others see of processes', { path: '^(projections|src/(reactors|live|ingress))/' }, { path: '^src/processes/', pathNot: '/views\\.ts$' }),
    forbid('reactors-use-the-front-door', 'a reactor issues commands, it calls no route', { path: '^src/reactors/' }, { path: '^src/features/(index|[^/]+/api)\\.ts$' }),
    forbid('reactors-never-project', 'a reactor writes no rows of others', { path: '^src/reactors/' }, { path: '^(projections|src/(ingress|live|cli|app|config))' }),
    forbid('ingress-decides-nothing', 'the door lets in and out', { path: '^src/(ingress|live)/' }, { path: '^(src/(reactors|cli|app|config)|projections)' }),
    forbid('nobody-imports-the-root', 'one composition root', { pathNot: ROOTS }, { path: '^src/(app|open-engines)\\.ts$' }),
    forbid('configuration-is-handed-down', 'configuration is read once', { pathNot: `${ROOTS}|^src/(roles/|feature\\.ts)` }, { path: '^src/config\\.ts$' }),
    forbid('roles-take-configuration', 'a role knows the shape of it and reads none', { path: '^src/(roles/|feature\\.ts)' }, { path: '^src/config\\.ts$', dependencyTypesNot: ['type-only'] }),
    forbid('nobody-imports-the-roles', 'parts do not know how they are put together', { pathNot: `${ROOTS}|^src/roles/` }, { path: '^src/roles/' }),
    forbid('roles-are-strangers', 'a role is opened from the services alone: another one may run elsewhere', { path: ROLE }, { path: ROLE }),
    forbid('nobody-imports-the-command-line', 'commands start the service, it knows none', { pathNot: '^src/(main\\.ts$|cli/)|^test/|^bench/' }, { path: '^src/(main\\.ts$|cli/)' }),
    forbid('the-console-is-a-client', 'it knows the service by its public API alone', { path: '^src/console/' }, { pathNot: '^src/console/|(^|node_modules/)(svelte|maplibre-gl|pmtiles|uplot|uqr|geojson|@types/geojson)' }),
    forbid('nobody-imports-the-console', 'the service sends it and knows nothing of it', { path: '^(src|projections)/', pathNot: '^src/console/' }, { path: '^src/console/' }),
    forbid('production-needs-no-tools', 'what an image leaves out, the service must not load', { path: '^(src|projections)/', pathNot: '^src/console/' }, { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] }),
    forbid('production-never-imports-tests', 'tests look at the product, not the other way', { path: '^(src|projections)/' }, { path: '^(test|bench)/|\\.(test|bench)\\.ts$' }),
  ],
  options: { tsPreCompilationDeps: true, doNotFollow: { path: 'node_modules' }, tsConfig: { fileName: 'tsconfig.json' } },
}
