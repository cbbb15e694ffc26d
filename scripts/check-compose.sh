#!/usr/bin/env bash
# Checks docker-compose.yml as far as a machine can: with the compose client where it is, else by its YAML alone.
set -eu
if docker compose version >/dev/null 2>&1; then
  docker compose --profile single --profile roles config --quiet
  echo 'docker compose config: valid'
else
  python3 -c "import yaml,sys; yaml.safe_load(open('docker-compose.yml'))" 2>/dev/null && echo 'no compose client here: YAML alone is valid' || echo 'no compose client here: not checked'
fi
