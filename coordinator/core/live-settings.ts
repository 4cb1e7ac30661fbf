/**
 * Settings that are read as they are when they are needed, since operators change them meanwhile.
 */

/** Each property is read from `now()` when it is asked for. */
export function following<Settings extends object>(now: () => Settings): Settings {
  return readAnew((name) => now()[name as keyof Settings]);
}

/** A copy would stay as it was when it was made, so there is none. */
export function readAnew<Settings extends object>(read: (name: string | symbol) => unknown): Settings {
  return new Proxy({} as Settings, {
    get: (_, name) => read(name),
    ownKeys: () => {
      throw new Error("settings that follow the policies are read when they are needed, and never copied");
    },
  });
}
