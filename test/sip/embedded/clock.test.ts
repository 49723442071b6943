import { expect, it } from 'vitest';
import { containedClock } from '../../../sip/embedded/clock.ts';
import { SimulatedClock } from './simulated-clock.ts';

it('a clock reports a timer that throws and runs the others', () => {
  const simulated = new SimulatedClock();
  const faults: unknown[] = [];
  const ran: string[] = [];
  const clock = containedClock(simulated, (error) => faults.push(error));
  clock.after(10, () => {
    throw new Error('broken');
  });
  clock.after(20, () => ran.push('second'));
  const cancel = clock.after(30, () => ran.push('cancelled'));
  cancel();
  simulated.advance(100);
  expect(faults).toEqual([new Error('broken')]);
  expect(ran).toEqual(['second']);
});
