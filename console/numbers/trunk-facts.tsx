import { Group, Stack, Text } from '@mantine/core';
import { CopyField } from '../parts/copy-field.tsx';
import { DataTable } from '../parts/data-table.tsx';
import { Facts } from '../parts/facts.tsx';
import { count, money } from '../parts/format.ts';
import { Time } from '../parts/time.tsx';
import { healthText, trunkPanelText as text, trunkFormText } from '../text/trunks.ts';
import type { Trunk } from './queries.ts';
import { reachabilityText } from './reachability.ts';
import { ReachabilityBadge, RegistrationHealth, TrunkHealth } from './trunk-health.tsx';
import { VerifyNumber } from './verify-number.tsx';

export function HealthFacts({ trunk }: { trunk: Trunk }) {
  const { reachability, register, registration } = trunk;
  const facts = [
    {
      label: text.health,
      value: (
        <Group gap="xs">
          <TrunkHealth trunk={trunk} />
          {reachability.since !== null && (
            <Text size="sm" c="dimmed" component="span">
              {healthText.since} <Time at={reachability.since} />
            </Text>
          )}
        </Group>
      ),
    },
    ...(trunk.status === 'active' ? [{ label: text.reason, value: reachabilityText(trunk).reason }] : []),
    ...(register ? [{ label: text.registration, value: <Registration trunk={trunk} /> }] : []),
    ...(registration?.expires_at ? [{ label: text.expires, value: <Time at={registration.expires_at} /> }] : []),
  ];
  return <Facts columns="one" facts={facts} />;
}

function Registration({ trunk }: { trunk: Trunk }) {
  const error = trunk.registration?.last_error;
  return (
    <Stack gap={2} align="flex-start">
      <RegistrationHealth trunk={trunk} />
      {error && <span>{error}</span>}
    </Stack>
  );
}

export function GatewayFacts({ trunk: { gateways, health } }: { trunk: Trunk }) {
  return (
    <DataTable
      label={text.gateways}
      rows={gateways}
      rowKey={({ sip_uri: uri, transport }) => `${uri} ${transport}`}
      columns={[
        {
          id: 'address',
          header: text.gateway,
          cell: ({ sip_uri: uri, transport }) => `${uri} · ${transport.toUpperCase()}`,
        },
        { id: 'order', header: text.order, cell: ({ priority, weight }) => `${priority} / ${weight}` },
        { id: 'health', header: text.health, cell: (gateway) => <ReachabilityBadge {...gateway} health={health} /> },
      ]}
    />
  );
}

export function TrunkNumbers({ trunk }: { trunk: Trunk }) {
  const { numbers, unverified_numbers: unverified } = trunk;
  if (numbers.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {text.noNumbers}
      </Text>
    );
  }
  return (
    <Stack gap={6}>
      {numbers.map((number) => (
        <Group key={number} gap="xs" justify="space-between">
          <Text size="sm" className="tabular">
            {number}
          </Text>
          {unverified.includes(number) && <VerifyNumber e164={number} trunkId={trunk.id} />}
        </Group>
      ))}
    </Stack>
  );
}

export function SettingFacts({ trunk }: { trunk: Trunk }) {
  return (
    <Facts
      columns="one"
      facts={[
        { label: text.address, value: `${trunk.sip_uri} · ${trunkFormText.transports[trunk.transport]}` },
        { label: text.username, value: trunk.username ?? text.none },
        { label: text.inbound, value: trunk.inbound_auth?.username ?? text.none },
        { label: text.codecs, value: trunk.codecs.join(', ') },
        { label: text.encryption, value: trunkFormText.encryptions[trunk.media_encryption] },
        { label: text.channels, value: count(trunk.channels) },
        { label: text.price, value: money(trunk.price_per_minute_usd) },
        { label: text.prefixes, value: trunk.allowed_prefixes.join(', ') || text.allPrefixes },
        { label: text.refer, value: trunkFormText.refers[trunk.refer] },
        { label: text.callerId, value: trunk.default_caller_id ?? text.none },
        { label: text.created, value: <Time at={trunk.created_at} /> },
        { label: text.id, value: <CopyField value={trunk.id} label={text.id} /> },
      ]}
    />
  );
}
