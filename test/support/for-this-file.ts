import { afterAll } from "vitest";

/** Open until the tests of the file have ended. At its top: `const database = await forThisFile(testDatabase())` */
export async function forThisFile<Opened extends { close(): unknown }>(
  opening: Promise<Opened>,
): Promise<Opened> {
  const opened = await opening;
  afterAll(async () => {
    await opened.close();
  });
  return opened;
}
