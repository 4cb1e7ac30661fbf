/** Settings that are read whenever they are needed, because operators change them at run time. */

/** Returns an object that reads each property from `now()` on access. */
export function following<Settings extends object>(now: () => Settings): Settings {
  return readAnew((name) => now()[name as keyof Settings]);
}

/** Spreading or copying it would freeze the values, so its keys cannot be listed. */
export function readAnew<Settings extends object>(read: (name: string | symbol) => unknown): Settings {
  return new Proxy({} as Settings, {
    get: (_, name) => read(name),
    ownKeys: () => {
      throw new Error("settings that follow the policies are read when they are needed, and never copied");
    },
  });
}
