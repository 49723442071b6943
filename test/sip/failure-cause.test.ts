import { describe, expect, test } from 'vitest';
import { causeOfBye, causeOfStatus, reasonHeaderOf } from '../../sip/failure-cause.ts';

describe('the cause of a refusal', () => {
  test.each([
    [403, 'CALL_REJECTED'],
    [404, 'UNALLOCATED_NUMBER'],
    [408, 'RECOVERY_ON_TIMER_EXPIRE'],
    [410, 'NUMBER_CHANGED'],
    [480, 'NO_USER_RESPONSE'],
    [484, 'INVALID_NUMBER_FORMAT'],
    [486, 'USER_BUSY'],
    [487, 'ORIGINATOR_CANCEL'],
    [488, 'INCOMPATIBLE_DESTINATION'],
    [500, 'NORMAL_TEMPORARY_FAILURE'],
    [502, 'NETWORK_OUT_OF_ORDER'],
    [503, 'NORMAL_TEMPORARY_FAILURE'],
    [600, 'USER_BUSY'],
    [603, 'CALL_REJECTED'],
    [604, 'NO_ROUTE_DESTINATION'],
  ] as const)('%i is %s', (status, cause) => {
    expect(causeOfStatus(status)).toBe(cause);
  });

  test('a status that no table knows goes by its class', () => {
    expect(causeOfStatus(302)).toBe('NORMAL_UNSPECIFIED');
    expect(causeOfStatus(499)).toBe('NORMAL_UNSPECIFIED');
    expect(causeOfStatus(599)).toBe('NORMAL_TEMPORARY_FAILURE');
    expect(causeOfStatus(699)).toBe('CALL_REJECTED');
  });

  test("the network's own Q.850 cause goes before the table", () => {
    expect(causeOfStatus(480, 'Q.850;cause=1;text="Unallocated"')).toBe('UNALLOCATED_NUMBER');
    expect(causeOfStatus(503, 'SIP;cause=503;text="a, b", q.850 ; cause = 34')).toBe('SWITCH_CONGESTION');
    expect(causeOfStatus(486, 'Q.850;text="x";cause=19')).toBe('NO_ANSWER');
  });

  test('a Reason of another protocol, or without a cause, changes nothing', () => {
    expect(causeOfStatus(486, 'SIP;cause=200;text="Call completed elsewhere"')).toBe('USER_BUSY');
    expect(causeOfStatus(486, 'SIP;text="Q.850;cause=1"')).toBe('USER_BUSY');
    expect(causeOfStatus(486, 'Q.850')).toBe('USER_BUSY');
    expect(causeOfStatus(486, '')).toBe('USER_BUSY');
  });

  test('a Q.850 cause that has no name of its own is unspecified', () => {
    expect(causeOfStatus(486, 'Q.850;cause=99')).toBe('NORMAL_UNSPECIFIED');
  });
});

describe('the cause of a BYE', () => {
  test('is a normal clearing unless its Reason says otherwise', () => {
    expect(causeOfBye(undefined)).toBe('NORMAL_CLEARING');
    expect(causeOfBye('Q.850;cause=41')).toBe('NORMAL_TEMPORARY_FAILURE');
  });

  test('that we send reads back as what we meant', () => {
    for (const cause of ['NORMAL_CLEARING', 'USER_BUSY', 'NO_USER_RESPONSE', 'NO_ROUTE_DESTINATION'] as const) {
      expect(causeOfBye(reasonHeaderOf(cause))).toBe(cause);
    }
    expect(reasonHeaderOf('NO_USER_RESPONSE')).toBe('Q.850;cause=18;text="NO_USER_RESPONSE"');
  });

  test('of the platform itself is a normal clearing to the network', () => {
    expect(reasonHeaderOf('INSUFFICIENT_FUNDS')).toBe('Q.850;cause=16;text="INSUFFICIENT_FUNDS"');
  });
});
