import { describe, expect, it } from 'vitest';
import { filtersOf } from '../../console/calls/filters.ts';
import { auditFiltersOf } from '../../console/developers/audit-filters.ts';
import { ledgerFilters, paymentFilters } from '../../console/wallet/filters.ts';

const INVALID = { from: 'yesterday', to: '9999-12-31', key: '99999999999', actor: '0' };

describe('the filters of an address', () => {
  it('ignore values that the server would reject', () => {
    const search = { ...INVALID, service: 'nope', status: 'constructor', type: 'nope', paid: 'nope', action: 'nope' };
    expect(ledgerFilters(search)).toEqual({});
    expect(paymentFilters(search)).toEqual({});
    expect(auditFiltersOf(search)).toEqual({});
    expect(filtersOf({ ...INVALID, period: 'constructor' })).toEqual({});
  });

  it('keep valid values in the form of the API', () => {
    const from = new Date(2026, 0, 31).toISOString();
    const search = {
      service: 'tts',
      status: 'refunded',
      key: '7',
      type: 'one_time',
      paid: 'failed',
      from: '2026-01-31',
    };
    expect(ledgerFilters(search)).toEqual({ service: 'tts', status: 'refunded', api_key_id: '7', from });
    expect(paymentFilters(search)).toEqual({ payment_type: 'one_time', status: 'failed', from });
    expect(auditFiltersOf({ actor: '7' })).toEqual({ actor_user_id: 7 });
  });
});
