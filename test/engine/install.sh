#!/usr/bin/env bash
# Puts the engines that rank exported graphs into a virtual environment of the checkout: DuckDB, and for the nightly run Spark; and
# what OpenSearch, the engine of searches, needs: Java and Maven. Without them their tests are skipped aloud.
set -euo pipefail
cd "$(dirname "$0")/../.."
engines=node_modules/.cache/engines
if ! { python3 -m venv "$engines" && timeout 600 "$engines/bin/pip" install --quiet duckdb==2.0.1 ${NEARCRAWL_LONG:+pyspark==3.5.6}; }; then
  echo "skipped: the engines could not be installed" >&2
fi
if ! { command -v javac && command -v mvn; } >/dev/null &&
  ! { apt-get update -qq && apt-get install -qq -y --no-install-recommends openjdk-17-jdk-headless maven; } >/dev/null; then
  echo "skipped: Java and Maven could not be installed" >&2
fi
