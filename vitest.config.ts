import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { conditions: ["nearcrawl-source", "node", "import", "default"] },
  ssr: { resolve: { conditions: ["nearcrawl-source", "node", "import", "default"] } },
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
