import { defineConfig } from "vitest/config";

/** The doors of package.json lead to the source, for the tests and for the global set-up alike. */
// Not "import": it would reach Node, whose require() would then load the wrong half of a package.
const conditions = ["nearcrawl-source", "node"];
/** Tests whose subject is time on the wire: beside others they would measure how busy the machine is. */
const alone = ["test/end-to-end/{live-rounds,route-change,one-crawler-per-address,swapped-fleet}.test.ts"];
const globalSetup = ["test/support/global-setup.ts"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  environments: { __vitest__: { resolve: { conditions } } },
  test: {
    testTimeout: 120_000,
    hookTimeout: 60_000,
    maxWorkers: 3,
    projects: [
      {
        extends: true,
        test: {
          name: "all",
          globalSetup,
          include: ["test/**/*.test.ts"],
          exclude: alone,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: "alone", globalSetup, include: alone, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
