import type { operations } from '@tandem/client';
import { changedFields } from '../parts/changed-fields.ts';
import { listOf } from './list-of.ts';
import type { Trunk } from './queries.ts';

export type TrunkBody = NonNullable<operations['createTrunk']['requestBody']>['content']['application/json'];
export type TrunkChanges = NonNullable<operations['updateTrunk']['requestBody']>['content']['application/json'];

type Fields = Record<string, string>;

/** Settings that the form always has. */
function settingsOf(fields: Fields) {
  return {
    name: fields.name!.trim(),
    sip_uri: fields.sip_uri!.trim(),
    transport: fields.transport as TrunkBody['transport'],
    username: fields.username!.trim() || null,
    register: fields.register !== undefined,
    numbers: listOf(fields.numbers),
    price_per_minute_usd: Number(fields.price_per_minute_usd || 0),
    channels: Number(fields.channels),
    codecs: listOf(fields.codecs) as NonNullable<TrunkBody['codecs']>,
    media_encryption: fields.media_encryption as TrunkBody['media_encryption'],
    allowed_prefixes: listOf(fields.allowed_prefixes),
    health: {
      mode: fields.health_mode as 'options' | 'none',
      interval_seconds: Number(fields.health_interval),
    },
    refer: fields.refer as TrunkBody['refer'],
  };
}

export function newTrunkOf(fields: Fields): TrunkBody {
  const username = fields.inbound_username!.trim();
  return {
    ...settingsOf(fields),
    ...(fields.password && { password: fields.password }),
    ...(username !== '' && { inbound_auth: { username, password: fields.inbound_password! } }),
  };
}

/**
 * Changes of a trunk as it was when the form opened. Empty secrets stay unchanged. Clearing the user name removes its
 * password as well.
 */
export function changesOf(fields: Fields, trunk: Trunk): TrunkChanges {
  const settings = settingsOf(fields);
  const isUsernameCleared = settings.username === null && trunk.username !== null;
  const inboundUsername = fields.inbound_username!.trim();
  const password = fields.password || (isUsernameCleared ? null : undefined);
  const inbound =
    inboundUsername === ''
      ? trunk.inbound_auth && { inbound_auth: null }
      : (fields.inbound_password || inboundUsername !== trunk.inbound_auth?.username) && {
          inbound_auth: { username: inboundUsername, password: fields.inbound_password! },
        };
  // The address is the first gateway. If it stays, the gateways keep their order.
  const { sip_uri, transport, ...others } = settings;
  const address = sip_uri !== trunk.sip_uri || transport !== trunk.transport ? { sip_uri, transport } : {};
  return {
    ...changedFields(others, trunk),
    ...address,
    ...(password !== undefined && { password }),
    ...(inbound || {}),
  };
}
