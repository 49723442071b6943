import type { FakeStep } from '../fake-engine.ts';

/** A script that blocks matching steps of a fake engine until the gate opens. */
export function gate(isHeld: (step: FakeStep) => boolean): {
  script: (step: FakeStep) => Promise<void> | undefined;
  open: () => void;
} {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { script: (step) => (isHeld(step) ? promise : undefined), open: resolve };
}
