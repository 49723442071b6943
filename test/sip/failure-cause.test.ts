import { describe, expect, test } from 'vitest';
import { causeOfBye, causeOfStatus, reasonHeaderOf } from '../../sip/failure-cause.ts';

describe('rejection cause', () => {
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
  ] as const)('maps %i to %s', (status, cause) => {
    expect(causeOfStatus(status)).toBe(cause);
  });

  test('falls back to the class of an unknown status', () => {
    expect(causeOfStatus(302)).toBe('NORMAL_UNSPECIFIED');
    expect(causeOfStatus(499)).toBe('NORMAL_UNSPECIFIED');
    expect(causeOfStatus(599)).toBe('NORMAL_TEMPORARY_FAILURE');
    expect(causeOfStatus(699)).toBe('CALL_REJECTED');
  });

  test('prefers a Q.850 cause of the network', () => {
    expect(causeOfStatus(480, 'Q.850;cause=1;text="Unallocated"')).toBe('UNALLOCATED_NUMBER');
    expect(causeOfStatus(503, 'SIP;cause=503;text="a, b", q.850 ; cause = 34')).toBe('SWITCH_CONGESTION');
    expect(causeOfStatus(486, 'Q.850;text="x";cause=19')).toBe('NO_ANSWER');
  });

  test('ignores a Reason with another protocol or without a cause', () => {
    expect(causeOfStatus(486, 'SIP;cause=200;text="Call completed elsewhere"')).toBe('USER_BUSY');
    expect(causeOfStatus(486, 'SIP;text="Q.850;cause=1"')).toBe('USER_BUSY');
    expect(causeOfStatus(486, 'Q.850')).toBe('USER_BUSY');
    expect(causeOfStatus(486, '')).toBe('USER_BUSY');
  });

  test('maps Q.850 causes that are never sent to the closest one', () => {
    expect(causeOfStatus(503, 'Q.850;cause=44')).toBe('SWITCH_CONGESTION');
    expect(causeOfStatus(503, 'Q.850;cause=47')).toBe('SWITCH_CONGESTION');
    expect(causeOfStatus(480, 'Q.850;cause=63')).toBe('NORMAL_TEMPORARY_FAILURE');
    expect(causeOfBye('Q.850;cause=57')).toBe('CALL_REJECTED');
    expect(causeOfStatus(403, 'Q.850;cause=87')).toBe('CALL_REJECTED');
    expect(reasonHeaderOf('SWITCH_CONGESTION')).toBe('Q.850;cause=42;text="SWITCH_CONGESTION"');
    expect(reasonHeaderOf('CALL_REJECTED')).toBe('Q.850;cause=21;text="CALL_REJECTED"');
  });

  test('maps an unknown Q.850 cause like the unspecified one of its class', () => {
    expect(causeOfStatus(503, 'Q.850;cause=43')).toBe('SWITCH_CONGESTION');
    expect(causeOfStatus(503, 'Q.850;cause=49')).toBe('NORMAL_TEMPORARY_FAILURE');
    expect(causeOfStatus(500, 'Q.850;cause=66')).toBe('SERVICE_NOT_IMPLEMENTED');
    expect(causeOfStatus(500, 'Q.850;cause=99')).toBe('INTERWORKING');
    expect(causeOfStatus(486, 'Q.850;cause=26')).toBe('NORMAL_UNSPECIFIED');
    expect(causeOfStatus(486, 'Q.850;cause=200')).toBe('NORMAL_UNSPECIFIED');
  });
});

describe('BYE cause', () => {
  test('defaults to normal clearing without a Reason', () => {
    expect(causeOfBye(undefined)).toBe('NORMAL_CLEARING');
    expect(causeOfBye('Q.850;cause=41')).toBe('NORMAL_TEMPORARY_FAILURE');
  });

  test('survives a round trip through the Reason header', () => {
    for (const cause of ['NORMAL_CLEARING', 'USER_BUSY', 'NO_USER_RESPONSE', 'NO_ROUTE_DESTINATION'] as const) {
      expect(causeOfBye(reasonHeaderOf(cause))).toBe(cause);
    }
    expect(reasonHeaderOf('NO_USER_RESPONSE')).toBe('Q.850;cause=18;text="NO_USER_RESPONSE"');
  });

  test('maps platform causes to normal clearing for the network', () => {
    expect(reasonHeaderOf('INSUFFICIENT_FUNDS')).toBe('Q.850;cause=16;text="INSUFFICIENT_FUNDS"');
  });
});
