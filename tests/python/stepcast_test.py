"""The Python module against the program that it runs. PYTHONPATH: the module's folder."""

import concurrent.futures
import csv
import os
import tempfile
import unittest

import pandas
import stepcast

SCENARIO = {
    "name": "from-python",
    "model": "resnet50",
    "trace": "resnet50-b32-v100-dgxs-32gb-pt2021",
    "platform": "dgx1v",
    "strategy": {"kind": "synchronous", "all_reduce": "ring"},
    "sweep": {"workers": [1, 8]},
}


class Run(unittest.TestCase):
    def test_columns_are_those_of_the_result_file(self):
        with tempfile.TemporaryDirectory() as folder:
            columns = stepcast.run(SCENARIO, output=folder + "/out", options=["--results-only"])
            with open(folder + "/out/results.csv", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
        self.assertEqual(columns["workers"], [1, 8])
        for name in rows[0]:
            shown = [row[name] for row in rows]
            if name.endswith("_seconds"):
                self.assertEqual(columns[name], [float(text) if text else None for text in shown])
        self.assertEqual(len({len(values) for values in columns.values()}), 1)

    def test_set_replaces_values(self):
        columns = stepcast.run(SCENARIO, set={"sweep.workers": [4], "strategy.bucket": "1 MiB", "strategy.all_reduce": None})
        self.assertEqual(columns["workers"], [4])

    def test_no_file_stays_without_output(self):
        with tempfile.TemporaryDirectory() as folder:
            before = os.getcwd()
            os.chdir(folder)
            try:
                stepcast.run(SCENARIO, jobs=1)
            finally:
                os.chdir(before)
            self.assertEqual(os.listdir(folder), [])

    def test_published_figures_stand_beside_their_forecasts(self):
        figure = {"point": {"workers": 8}, "column": "step_seconds", "kind": "predicted", "value": "0.1 s", "source": "made up"}
        columns = stepcast.run({**SCENARIO, "published": [figure]})
        self.assertEqual(columns.published["published"], [0.1])
        self.assertEqual(stepcast.run(SCENARIO).published, {})

    def test_pandas_takes_the_columns(self):
        frame = pandas.DataFrame(stepcast.run(SCENARIO, draws=1))
        self.assertEqual(list(frame["workers"]), [1, 8])
        self.assertEqual(frame["step_seconds"].dtype.kind, "f")
        self.assertEqual(frame.set_index("workers")["efficiency"][1], 1)
        self.assertLess(frame["efficiency"].min(), 1)

    def test_a_point_that_fails_is_a_row(self):
        columns = stepcast.run({**SCENARIO, "global_batch": 32, "sweep": {"workers": [1, 3, 8]}}, draws=1)
        self.assertEqual([failed is not None for failed in columns["failed"]], [False, True, False])
        self.assertEqual([seconds is None for seconds in columns["step_seconds"]], [False, True, False])

    def test_threads_can_run_at_the_same_time(self):
        def run(workers):
            return stepcast.run(SCENARIO, set={"sweep.workers": [workers]}, draws=1)["workers"]

        with concurrent.futures.ThreadPoolExecutor() as threads:
            self.assertEqual(list(threads.map(run, [2, 4, 8])), [[2], [4], [8]])


class Errors(unittest.TestCase):
    def test_a_mistake_is_a_value_error_with_its_place(self):
        with self.assertRaisesRegex(stepcast.InputError, "workers") as caught:
            stepcast.run({**SCENARIO, "wokers": 3})
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertIsInstance(caught.exception, ValueError)

    def test_check_finds_mistakes_without_a_simulation(self):
        stepcast.check(SCENARIO)
        with self.assertRaisesRegex(stepcast.InputError, 'did you mean "resnet50"'):
            stepcast.check({**SCENARIO, "model": "resnet5O"})

    def test_a_limit_has_its_own_error(self):
        with self.assertRaises(stepcast.LimitError):
            stepcast.run(SCENARIO, options=["--memory-limit", "1 B"])


class About(unittest.TestCase):
    def test_schema_and_version(self):
        self.assertIn("strategy", stepcast.schema()["properties"])
        self.assertIn("SimGrid", stepcast.version())


if __name__ == "__main__":
    unittest.main()
