import { expect, it } from 'vitest';

/** The machine under test. */
interface Subject<Happening> {
  state(): unknown;
  take(happening: Happening): Promise<unknown>;
}

export interface StateTable<State extends string, Happening extends string> {
  /** Events that lead to each state. */
  paths: Readonly<Record<State, readonly Happening[]>>;
  /** State x event. An absent cell means no change. */
  table: Readonly<Record<State, Partial<Record<Happening, string>>>>;
  happenings: readonly Happening[];
  start(): Subject<Happening>;
}

/** Tests each cell of the table. */
export function testEachCell<State extends string, Happening extends string>({
  paths,
  table,
  happenings,
  start,
}: StateTable<State, Happening>): void {
  for (const state of Object.keys(table) as State[]) {
    for (const happening of happenings) {
      const cell = table[state][happening];
      it(`in ${state}, "${happening}" ${cell === undefined ? 'changes nothing' : `leads to ${cell}`}`, async () => {
        const subject = start();
        for (const step of paths[state]) await subject.take(step);
        expect(subject.state()).toBe(state);
        await subject.take(happening);
        expect(subject.state()).toBe(cell ?? state);
      });
    }
  }
}
