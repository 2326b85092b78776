/** The hottest functions of a CPU profile in the format of the V8 inspector, which all three runtimes write. */

/** What is used of a `.cpuprofile`. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  /** Microseconds. */
  readonly timeDeltas: readonly number[];
}

interface ProfileNode {
  readonly id: number;
  readonly callFrame: {
    readonly functionName: string;
    readonly url: string;
    readonly lineNumber: number;
  };
}

/** A function and its share of the busy time. */
export interface HotFunction {
  readonly name: string;
  /** File and line. */
  readonly place: string;
  /** Of [0, 1]. */
  readonly share: number;
}

/** Time in which nothing ran. */
const IDLE: ReadonlySet<string> = new Set(["(idle)", "(root)"]);

/**
 * Functions by the time spent in themselves, the hottest first; waiting does not count.
 *
 * @param milliseconds how much of the profile's end is looked at: not the start of the process
 */
export function hotFunctions(profile: CpuProfile, milliseconds: number = Infinity): HotFunction[] {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node.callFrame]));
  const times = new Map<string, { name: string; place: string; time: number }>();
  let total = 0;
  let rest = profile.timeDeltas.reduce((sum, delta) => sum + delta, 0);
  profile.samples.forEach((id, i) => {
    const frame = nodes.get(id);
    const time = profile.timeDeltas[i] ?? 0;
    rest -= time;
    if (rest >= milliseconds * 1000) return;
    if (frame === undefined || IDLE.has(frame.functionName)) return;
    total += time;
    const name = frame.functionName || "(anonymous)";
    const place = `${frame.url.replace(/^.*\/(?=(?:src|bench|node_modules)\/)/, "")}:${frame.lineNumber + 1}`;
    const key = `${name} ${place}`;
    const entry = times.get(key) ?? { name, place: frame.url === "" ? "" : place, time: 0 };
    entry.time += time;
    times.set(key, entry);
  });
  return [...times.values()].sort((a, b) => b.time - a.time).map(({ name, place, time }) => ({
    name,
    place,
    share: time / total,
  }));
}
