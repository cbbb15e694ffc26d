FROM node:22-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
# What is left is for Node 22 on Linux: the package for later Nodes and the binaries of other systems go.
RUN npm run build \
  && npm prune --omit=dev --ignore-scripts \
  && rm -rf node_modules/@btc-vision \
  && find node_modules/uWebSockets.js/dist/bin -name '*.node' ! -name 'uws_linux_*_127.node' -delete

FROM node:22-bookworm-slim
WORKDIR /app
ENV NODE_ENV=production WAYMARK_HOST=0.0.0.0 WAYMARK_DATA=/data
# /keys: where processes of one installation share the keyring.
RUN mkdir -m 700 /data /keys && chown node:node /data /keys
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/package.json /app/LICENSE /app/CHANGELOG.md ./
COPY --from=build /app/dist/src/main.js /app/dist/src/bundle.js dist/src/
COPY --from=build /app/dist/bundle dist/bundle
COPY --from=build /app/dist/console dist/console
COPY --from=build /app/src/web src/web
COPY --from=build /app/src/features/tiles/base.pmtiles src/features/tiles/base.pmtiles
COPY --from=build /app/demo demo
USER node
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.WAYMARK_PORT ?? 8080}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "--max-semi-space-size=64", "dist/src/main.js"]
CMD ["start"]
