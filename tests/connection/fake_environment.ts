/** An environment made of literals. */

import type { Environment } from "../../src/connection/environment.ts";

/** What a fake environment holds; everything is absent by default. */
export interface FakeSystem {
  windows?: boolean;
  user?: string | undefined;
  variables?: Record<string, string>;
  /** By path; a mode of 0600 unless told otherwise. */
  files?: Record<string, { text: string; mode?: number; owner?: number }>;
  /** Paths at which something is that cannot be read as a file. */
  unreadable?: readonly string[];
}

/** An environment that gives what `system` holds. */
export function fakeEnvironment(system: FakeSystem): Environment {
  const { windows = false, variables = {}, files = {} } = system;
  return {
    windows,
    variable: (name) => variables[name],
    userName: () => system.user,
    homeDirectory: () => variables["HOME"],
    mayExist: (path) => Promise.resolve(path in files || system.unreadable?.includes(path) === true),
    readFile: (path) => {
      const file = files[path];
      return Promise.resolve(
        file && {
          text: file.text,
          mode: windows ? undefined : file.mode ?? 0o600,
          ...(file.owner !== undefined && { owner: file.owner }),
        },
      );
    },
  };
}
