"""Objects as they travel: types, quantities, times, errors, patches. All pure."""
