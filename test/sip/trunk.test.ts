import { expect, test } from 'vitest';
import { calledUri, nextHopOf, readTrunkUri, trunkUri } from '../../sip/trunk.ts';
import { codeOf } from './thrown-code.ts';

test('a TLS trunk names its transport, except with sips, which implies it', () => {
  expect(trunkUri({ sipUri: 'sip:carrier.example', transport: 'tls' })).toBe('sip:carrier.example;transport=tls');
  expect(calledUri({ sipUri: 'sips:carrier.example:5071', transport: 'tls' }, '100')).toBe(
    'sips:100@carrier.example:5071',
  );
});

test('the next hop over TLS keeps the name that the certificate must match', () => {
  const nextHop = { address: '192.0.2.7', port: null };
  expect(nextHopOf({ sipUri: 'sip:carrier.example', transport: 'tls', nextHop })).toEqual({
    proxy: 'sip:carrier.example;transport=tls;maddr=192.0.2.7',
  });
  expect(nextHopOf({ sipUri: 'sip:carrier.example', transport: 'tcp', nextHop })).toEqual({
    proxy: 'sip:192.0.2.7;transport=tcp',
  });
});

test('the next hop uses the port of its SRV record, otherwise of the URI', () => {
  const named = { sipUri: 'sip:carrier.example:5080', transport: 'udp' } as const;
  expect(nextHopOf({ ...named, nextHop: { address: '2001:db8::7', port: null } })).toEqual({
    proxy: 'sip:[2001:db8::7]:5080',
  });
  const located = { address: '192.0.2.7', port: 5071 };
  expect(nextHopOf({ sipUri: 'sip:carrier.example', transport: 'udp', nextHop: located })).toEqual({
    proxy: 'sip:192.0.2.7:5071',
  });
  expect(nextHopOf({ sipUri: 'sips:carrier.example', transport: 'tls', nextHop: located })).toEqual({
    proxy: 'sips:carrier.example:5071;maddr=192.0.2.7',
  });
  expect(nextHopOf({ sipUri: 'sip:192.0.2.7', transport: 'udp', nextHop: located })).toEqual({});
});

test('the called number becomes the user part of the trunk URI', () => {
  expect(calledUri({ sipUri: 'sip:carrier.example:5080', transport: 'udp' }, '+919876543210')).toBe(
    'sip:+919876543210@carrier.example:5080',
  );
  expect(calledUri({ sipUri: 'sip:[2001:db8::1]', transport: 'udp' }, '100')).toBe('sip:100@[2001:db8::1]');
});

test('a TCP trunk sets its transport in every URI', () => {
  expect(trunkUri({ sipUri: 'sip:10.0.0.1;transport=udp', transport: 'tcp' })).toBe('sip:10.0.0.1;transport=tcp');
});

test.each([
  'carrier.example',
  'sip:user@carrier.example',
  'sip:carrier.example:0',
  'sip:carrier.example:65536',
  'sip:carrier.example\r\nX-Evil: 1',
  'sip:carrier.example;a=<b>',
  'sip:',
  '',
])('rejects %j as a trunk', (sipUri) => {
  expect(codeOf(() => readTrunkUri(sipUri))).toBe('trunk.bad_uri');
});

test.each(['', '+', '12 34', '+91@evil.example', '1;phone-context=x', '1\r\nX-Evil: 1', '1'.repeat(21)])(
  'rejects %j as a number',
  (number) => {
    expect(codeOf(() => calledUri({ sipUri: 'sip:carrier.example', transport: 'udp' }, number))).toBe(
      'number.malformed',
    );
  },
);
