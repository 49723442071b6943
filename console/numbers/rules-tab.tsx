import { Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMay } from '../app/session.ts';
import { Facts } from '../parts/facts.tsx';
import { money } from '../parts/format.ts';
import { Loaded } from '../parts/loaded.tsx';
import { rulesText as text } from '../text/numbers.ts';
import { callingRulesQuery } from './queries.ts';
import type { Rules } from './rules-fields.ts';
import { RulesForm } from './rules-form.tsx';

export function RulesTab() {
  const rules = useQuery(callingRulesQuery);
  const may = useMay();
  return (
    <Loaded query={rules}>
      {(data) => (
        <Stack gap="xl" maw={640}>
          <Text size="sm" c="dimmed">
            {text.intro} {!may.administer && text.readOnly}
          </Text>
          {may.administer ? <RulesForm rules={data} /> : <RuleFacts rules={data} />}
          <section>
            <Title order={2} size="h5">
              {text.operator}
            </Title>
            <Text size="sm" c="dimmed" mb="sm">
              {text.operatorHint}
            </Text>
            <LimitFacts limits={data.operator_limits} />
          </section>
        </Stack>
      )}
    </Loaded>
  );
}

type Limits = Rules['operator_limits'];

function limitFacts({ daily_spend_cap_usd: cap, blocked_prefixes: blocked, destination_limits: limits }: Limits) {
  const perMinute = limits.map(({ prefix, calls_per_minute: calls }) => text.limit(prefix, calls));
  return [
    { label: text.spend, value: cap === null ? text.none : money(cap) },
    { label: text.blocked, value: blocked.join(', ') || text.none },
    { label: text.limits, value: perMinute.join(', ') || text.none },
  ];
}

function LimitFacts({ limits }: { limits: Limits }) {
  return <Facts columns="one" facts={limitFacts(limits)} />;
}

function RuleFacts({ rules }: { rules: Rules }) {
  const { calling_hours: hours } = rules;
  const calling = hours === null ? text.none : `${hours.start}–${hours.end} (${hours.time_zone})`;
  return <Facts columns="one" facts={[...limitFacts(rules), { label: text.hours, value: calling }]} />;
}
