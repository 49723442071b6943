import { expect, test } from 'vitest';
import { printableFault } from '../../sip/printable-fault.ts';

test.each([
  "invalid message, missing length specifier: 'INVITE sip:+919876543210@carrier'",
  'From: 98765 43210',
  'tel:+1-555-010-0199',
])('a printable fault hides the number in %j in message and stack', (message) => {
  const fault = printableFault(Object.assign(new TypeError(message), { code: 'ERR_X' }));
  // The test runner appends a load time to this file name.
  const stack = fault.stack!.replaceAll(/\?vitest=\d+/g, '');
  expect(`${fault.message} ${stack}`).not.toMatch(/\d[\d\s.()-]{5,}\d/);
  expect(fault).toMatchObject({ name: 'TypeError', code: 'ERR_X' });
  expect(fault.stack).toContain('printable-fault.test.ts');
});

test('a printable fault truncates values that are not errors', () => {
  expect(printableFault('x'.repeat(5000)).message).toHaveLength(300);
});
