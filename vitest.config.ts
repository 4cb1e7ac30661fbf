import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The doors of package.json lead to the source, for the tests and for the global set-up alike. */
// Not "import": it would reach Node, whose require() would then load the wrong half of a package.
const conditions = ["nearcrawl-source", "node"];
const doors = {
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  environments: { __vitest__: { resolve: { conditions } } },
};
const bounds = {
  testTimeout: 120_000,
  hookTimeout: 120_000,
  maxWorkers: 4,
  /**
   * A test that timed out runs once more: of thousands that run beside each other, on a machine that may have other work, one is
   * late now and then. The report marks it (retry x1). No other failure is retried.
   */
  retry: { count: 1, condition: /^not within \d+ ms|^(Test|Hook) timed out/ },
  setupFiles: ["test/support/every-file.ts"],
};

const all = ["test/**/*.test.ts"];
/** Journeys whose steps all have shorter tests as well: `npm run test:long` runs them each night. */
const journeys = "test/end-to-end/{restore-drill,whole-crawl,hosts-and-parts}.test.ts";
const nightly = process.env.NEARCRAWL_LONG === "1" ? [] : [journeys];

/** They take twenty seconds and more, and begin first: the run would wait for one that began last. */
const long =
  /(evening|killed-run|backup|registry\.browser|fleet\.browser|messages|restore-drill|embedded-postgres|chaos|many-days|real-web|standby|shared-files|engine\/ranks|silent-database|takeover|killed-moves)\.test\.ts$/;
/** Uses what another file installs, and would wait for it if it ran at the same time. */
const late = /packed-program\.test\.ts$/;

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => (long.test(moduleId) ? 0 : late.test(moduleId) ? 2 : 1);
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
  }
}
/** They measure time on the wire, and beside all other tests would measure how busy the machine is. */
const alone = [
  "test/end-to-end/{whole-way,one-crawler-per-address,hosts-and-parts}.test.ts",
  "test/ops/world/running-world.test.ts",
];

export default defineConfig({
  ...doors,
  test: {
    // Here and not in the projects, so that it runs once.
    globalSetup: ["test/support/global-setup.ts"],
    sequence: { sequencer: LongFirst },
    // Projects and runs share what was compiled.
    experimental: { fsModuleCache: true },
    projects: [
      // Files share processes and loaded modules (isolate: false), so each closes what it opens.
      {
        ...doors,
        test: {
          ...bounds,
          name: "all",
          include: all,
          exclude: [...alone, ...nightly],
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        ...doors,
        test: {
          ...bounds,
          name: "alone",
          include: alone,
          exclude: nightly,
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
