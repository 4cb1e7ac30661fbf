import { defineConfig } from "vitest/config";

/** The doors of package.json lead to the source, for the tests and for the global set-up alike. */
// Not "import": it would reach Node, whose require() would then load the wrong half of a package.
const conditions = ["nearcrawl-source", "node"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  environments: { __vitest__: { resolve: { conditions } } },
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
