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
   * What did not come within its time is waited for once more: of thousands of tests beside each other, on a machine that may have
   * other work, one is late now and then. The run marks it (retry x1); what is wrong in itself is never tried again.
   */
  retry: { count: 1, condition: /^not within \d+ ms|^(Test|Hook) timed out/ },
  setupFiles: ["test/support/every-file.ts"],
};

const all = ["test/**/*.test.ts"];
/**
 * Whole journeys whose every step has a test of its own, or a shorter journey beside it: `npm run test:long` runs them each night.
 * The first crawler's and the second partner's order is in small-internet and balance/second-partner, anycast in test/delegation,
 * first fetches and changed routes as well, recrawl rates in test/recrawl, a swap in the supervisor's tests, what follows a restore in
 * test/journal.
 */
const journeys =
  "test/end-to-end/{second-partner,anycast-address,changing-pages,swapped-fleet,restore-drill,route-change}.test.ts";
const nightly = process.env.NEARCRAWL_LONG === "1" ? [] : [journeys];

/** A third of a minute and more: one that began last would be waited for by itself. A run that knows how long they took knows better. */
const long =
  /(evening|killed-run|backup|registry\.browser|changing-fleet|fleet\.browser|messages|restore-drill|embedded-postgres|chaos|many-days|real-web|standby|shared-files|silent-database|hosts-and-parts|route-change|takeover|killed-moves)\.test\.ts$/;
/** Finds installed what another file installs; beside that it would wait for it. */
const late = /packed-program\.test\.ts$/;

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => (long.test(moduleId) ? 0 : late.test(moduleId) ? 2 : 1);
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
  }
}
/** Tests whose subject is time on the wire: beside all others they would measure how busy the machine is; two wait together. */
const alone = [
  "test/end-to-end/{changing-pages,hosts-and-parts,route-change,one-crawler-per-address,swapped-fleet}.test.ts",
  "test/ops/world/running-world.test.ts",
];
/** Compares distances within five milliseconds: when nothing else runs. */
const last = ["test/end-to-end/whole-way.test.ts"];

export default defineConfig({
  ...doors,
  test: {
    // Once for all of them: projects that are stated in full inherit no set-up of their own.
    globalSetup: ["test/support/global-setup.ts"],
    sequence: { sequencer: LongFirst },
    // What the first project has compiled, and the run before, the others need not compile again.
    experimental: { fsModuleCache: true },
    projects: [
      // Files share a process and its modules, loaded once and not hundreds of times: each closes what it opens.
      {
        ...doors,
        test: {
          ...bounds,
          name: "all",
          include: all,
          exclude: [...alone, ...last, ...nightly],
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
      {
        ...doors,
        test: {
          ...bounds,
          name: "last",
          include: last,
          isolate: false,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
