import { expect, test } from 'vitest';
import { printableFault } from '../../sip/printable-fault.ts';

test.each([
  "invalid message, missing length specifier: 'INVITE sip:+919876543210@carrier'",
  'From: 98765 43210',
  'tel:+1-555-010-0199',
])('the number in %j does not reach a log, in message or stack', (message) => {
  const fault = printableFault(Object.assign(new TypeError(message), { code: 'ERR_X' }));
  // The test runner names this file with the time at which it was loaded.
  const stack = fault.stack!.replaceAll(/\?vitest=\d+/g, '');
  expect(`${fault.message} ${stack}`).not.toMatch(/\d[\d\s.()-]{5,}\d/);
  expect(fault).toMatchObject({ name: 'TypeError', code: 'ERR_X' });
  expect(fault.stack).toContain('printable-fault.test.ts');
});

test('what is no error is printed as one, cut to size', () => {
  expect(printableFault('x'.repeat(5000)).message).toHaveLength(300);
});
