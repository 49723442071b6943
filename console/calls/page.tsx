import { Button, Center, Loader, Stack, Text } from '@mantine/core';
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Download, PhoneOff, SearchX } from 'lucide-react';
import { useMemo } from 'react';
import { urlOf } from '../app/url-of.ts';
import { useUrlSearch } from '../app/url-search.ts';
import { count } from '../parts/format.ts';
import { PageHeader } from '../parts/page-header.tsx';
import { EmptyState, ErrorState, LoadingState } from '../parts/states.tsx';
import { callsText } from '../text/calls.ts';
import { CallList } from './call-list.tsx';
import { FilterBar } from './filter-bar.tsx';
import { type CallFilters, callIdIn, filtersOf, hasFilters, readingsOf } from './filters.ts';
import { callsQuery, readingQuery, totalQuery } from './queries.ts';
import { SavedViews } from './saved-views.tsx';
import { Statistics } from './statistics.tsx';

export function Page() {
  const [search, change] = useUrlSearch();
  const filters = filtersOf(search);
  const query = useCalls(filters);
  const isById = callIdIn(filters) !== null;
  const { data } = useQuery({ ...totalQuery(filters), placeholderData: keepPreviousData });
  // The total of earlier filters remains while the query is disabled.
  const total = isById ? undefined : data;
  const { data: reading = readingsOf(filters)[0] } = useQuery(readingQuery(filters));
  return (
    <>
      <PageHeader title={callsText.title} description={total === undefined ? null : callsText.total(count(total))}>
        {!isById && (
          <Button
            component="a"
            href={urlOf('/dialer/export.csv', reading)}
            download
            variant="default"
            leftSection={<Download size={14} aria-hidden />}
          >
            {callsText.export}
          </Button>
        )}
        <SavedViews search={search} onOpen={(view) => change(view, { replace: false })} />
      </PageHeader>
      <Stack gap="sm">
        <Statistics filters={filters} />
        <FilterBar search={search} change={change} />
        <Results query={query} isFiltered={hasFilters(search)} />
      </Stack>
    </>
  );
}

/** Keeps the current calls while others load. */
function useCalls(filters: CallFilters) {
  return useInfiniteQuery({ ...callsQuery(filters), placeholderData: keepPreviousData });
}

function Results({ query, isFiltered }: { query: ReturnType<typeof useCalls>; isFiltered: boolean }) {
  const { data, error, hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage, refetch } = query;
  const calls = useMemo(() => data?.pages.flatMap((page) => page.calls) ?? [], [data]);
  if (data === undefined) return error ? <ErrorState error={error} onRetry={() => void refetch()} /> : <LoadingState />;
  if (calls.length === 0) return isFiltered ? <NoMatch /> : <NoCalls />;
  return (
    <div>
      <CallList
        calls={calls}
        hasMore={hasNextPage && !isFetchNextPageError}
        isLoadingMore={isFetchingNextPage}
        onMore={fetchNextPage}
      />
      {isFetchingNextPage && (
        <Center py="sm" role="status" aria-label={callsText.loadingMore}>
          <Loader size="xs" />
        </Center>
      )}
      {isFetchNextPageError && (
        <Center py="sm" role="alert">
          <Text size="sm" mr="sm">
            {callsText.moreFailed}
          </Text>
          <Button size="xs" variant="light" onClick={() => void fetchNextPage()}>
            {callsText.loadAgain}
          </Button>
        </Center>
      )}
    </div>
  );
}

function NoCalls() {
  return (
    <EmptyState
      icon={PhoneOff}
      title={callsText.emptyTitle}
      actions={
        <Button component={Link} to="/live">
          {callsText.toLive}
        </Button>
      }
    >
      {callsText.empty}
    </EmptyState>
  );
}

function NoMatch() {
  return (
    <EmptyState icon={SearchX} title={callsText.noMatchTitle}>
      {callsText.noMatch}
    </EmptyState>
  );
}
