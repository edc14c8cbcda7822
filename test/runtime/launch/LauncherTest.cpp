// Which launcher started us, from nothing but variables and flags.
#include "runtime/launch/Launcher.h"

#include <gmock/gmock.h>

using namespace mega;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

namespace {

LaunchInfo detected(const Environment &environment,
                    const LaunchFlags &flags = {}) {
  auto info = detectLauncher(environment, flags);
  EXPECT_TRUE(info.isOk()) << info.status().message();
  return info.isOk() ? *info : LaunchInfo();
}

void expectRefused(const Environment &environment,
                   const std::vector<std::string> &parts,
                   const LaunchFlags &flags = {}) {
  const auto info = detectLauncher(environment, flags);
  ASSERT_FALSE(info.isOk());
  EXPECT_EQ(info.status().code(), Code::Usage);
  for (const std::string &part : parts) {
    EXPECT_THAT(info.status().message(), HasSubstr(part));
  }
}

Environment with(Environment environment, const Environment &more) {
  for (const auto &[name, value] : more) {
    environment[name] = value;
  }
  return environment;
}
Environment without(Environment environment, const std::string &name) {
  environment.erase(name);
  return environment;
}

const Environment kTorchrun = {{"RANK", "5"},
                               {"WORLD_SIZE", "8"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "node7"},
                               {"MASTER_PORT", "29500"},
                               {"TORCHELASTIC_RUN_ID", "none"},
                               {"TORCHELASTIC_RESTART_COUNT", "0"}};
const Environment kSrun = {{"SLURM_PROCID", "5"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_NTASKS", "7"},
                           {"SLURM_NODEID", "1"},
                           {"SLURM_JOB_ID", "1000"},
                           {"SLURM_STEP_ID", "2"},
                           {"SLURM_STEP_NUM_TASKS", "7"},
                           {"SLURM_STEP_TASKS_PER_NODE", "4,3"},
                           {"SLURM_STEP_NODELIST", "n[007-008]"}};
const Environment kMpirun = {
    {"OMPI_COMM_WORLD_RANK", "2"},       {"OMPI_COMM_WORLD_SIZE", "4"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
    {"PMIX_NAMESPACE", "1234.1"},        {"PMIX_RANK", "2"}};
const Environment kPods = {{"MASTER_ADDR", "job-master-0"},
                           {"MASTER_PORT", "23456"},
                           {"WORLD_SIZE", "3"},
                           {"RANK", "2"}};

TEST(Launcher, AloneItRunsAllRanks) {
  EXPECT_EQ(detected({}), LaunchInfo());
  // What a shell may hold for other programs.
  EXPECT_EQ(detected({{"MASTER_ADDR", "x"}, {"LOCAL_RANK", "0"}, {"RANK", ""}}),
            LaunchInfo());
}

TEST(Launcher, Torchrun) {
  LaunchInfo wanted = {Launcher::Torchrun, 5, 8, 1, 4, "node7", 29501, 0};
  EXPECT_EQ(detected(kTorchrun), wanted);
  // The agent listens on MASTER_PORT; a new attempt has a port of its own.
  wanted.port = 29504;
  wanted.restartCount = 3;
  EXPECT_EQ(detected(with(kTorchrun, {{"TORCHELASTIC_RESTART_COUNT", "3"}})),
            wanted);
  EXPECT_EQ(detected(with(kTorchrun, {{"MASTER_PORT", "65535"}})).port, 1024);
  EXPECT_EQ(detected(without(kTorchrun, "TORCHELASTIC_RUN_ID")).launcher,
            Launcher::Torchrun);
}

TEST(Launcher, TorchrunInsideOfSlurmIsTorchrun) {
  EXPECT_EQ(detected(with(kSrun, kTorchrun)).launcher, Launcher::Torchrun);
  EXPECT_EQ(detected(with(kSrun, kTorchrun)).rank, 5);
}

TEST(Launcher, PartialOrContradictoryTorchrun) {
  for (const char *missing :
       {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    SCOPED_TRACE(missing);
    expectRefused(without(kTorchrun, missing), {"torchrun", missing});
  }
  expectRefused(with(kTorchrun, {{"RANK", "8"}}), {"RANK=8", "WORLD_SIZE=8"});
  expectRefused(with(kTorchrun, {{"LOCAL_RANK", "4"}}),
                {"LOCAL_RANK=4", "LOCAL_WORLD_SIZE=4"});
  expectRefused(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}}),
                {"LOCAL_WORLD_SIZE=9", "WORLD_SIZE=8"});
  expectRefused(with(kTorchrun, {{"WORLD_SIZE", "8x"}}), {"WORLD_SIZE=\"8x\""});
  expectRefused(with(kTorchrun, {{"RANK", "-1"}}), {"RANK=\"-1\""});
  expectRefused(with(kTorchrun, {{"MASTER_PORT", "70000"}}),
                {"MASTER_PORT=\"70000\"", "65535"});
}

TEST(Launcher, Srun) {
  const LaunchInfo wanted = {
      Launcher::Slurm, 5, 7, 1, 3, "n007", 32768 + 1000 * 31 % 16384 + 14, 0};
  EXPECT_EQ(detected(kSrun), wanted);
  EXPECT_EQ(detected(with(kSrun, {{"SLURM_RESTART_COUNT", "2"}})).port,
            wanted.port + 2);
  EXPECT_EQ(detected(with(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "3,4(x2)"}}))
                .localSize,
            4);
  EXPECT_EQ(
      detected(with(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "4(x2"}})).localSize,
      2);
  EXPECT_NE(detected(with(kSrun, {{"SLURM_JOB_ID", "1001"}})).port,
            wanted.port);
  expectRefused(with(kSrun, {{"SLURM_STEP_NODELIST", "n[7-"}}),
                {"SLURM_STEP_NODELIST", "n[7-"});
  expectRefused(without(kSrun, "SLURM_JOB_ID"), {"Slurm", "SLURM_JOB_ID"});
}

TEST(Launcher, SbatchWithoutSrunIsNotARank) {
  Environment script = kSrun;
  for (const char *ofStep :
       {"SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"}) {
    script = without(script, ofStep);
  }
  script["SLURM_PROCID"] = "0";
  EXPECT_EQ(detected(script), LaunchInfo());
  // And a shell by `srun --pty`, with the step number of an interactive one.
  EXPECT_EQ(detected(with(kSrun, {{"SLURM_PROCID", "0"},
                                  {"SLURM_STEP_ID", "4294967290"},
                                  {"SLURM_STEP_NUM_TASKS", "1"}})),
            LaunchInfo());
}

TEST(Launcher, OpenMpi) {
  const LaunchInfo info = detected(kMpirun);
  EXPECT_EQ(info.launcher, Launcher::OpenMpi);
  EXPECT_EQ(info.rank, 2);
  EXPECT_EQ(info.worldSize, 4);
  EXPECT_EQ(info.host, "127.0.0.1");
  EXPECT_NE(detected(with(kMpirun, {{"PMIX_NAMESPACE", "1235.1"}})).port,
            info.port);
  // Over several hosts nobody says where rank 0 is.
  const Environment hosts =
      with(kMpirun, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}});
  expectRefused(hosts, {"OMPI_COMM_WORLD_LOCAL_SIZE=3",
                        "OMPI_COMM_WORLD_SIZE=4", "--rendezvous HOST:PORT"});
  LaunchFlags flags;
  flags.rendezvous = "head:4000";
  EXPECT_EQ(detected(hosts, flags).host, "head");
  EXPECT_EQ(detected(hosts, flags).port, 4000);
}

TEST(Launcher, Mpich) {
  const Environment hydra = {{"PMI_RANK", "1"},
                             {"PMI_SIZE", "2"},
                             {"MPI_LOCALRANKID", "1"},
                             {"MPI_LOCALNRANKS", "2"}};
  EXPECT_EQ(detected(hydra).launcher, Launcher::Pmi);
  EXPECT_EQ(detected(hydra).localRank, 1);
  expectRefused(without(hydra, "PMI_SIZE"), {"PMI_RANK", "PMI_SIZE"});
}

TEST(Launcher, PodsOfAPyTorchJob) {
  const LaunchInfo wanted = {Launcher::PyTorchJob, 2,     3, 0, 1,
                             "job-master-0",       23457, 0};
  EXPECT_EQ(detected(kPods), wanted);
  EXPECT_EQ(detected(with(kPods, {{"PET_NPROC_PER_NODE", "1"}})), wanted);
  // RANK counts pods: with 8 processes each, nobody is rank 2 of 3.
  expectRefused(with(kPods, {{"PET_NPROC_PER_NODE", "8"}}),
                {"PET_NPROC_PER_NODE=8", "RANK=2 counts pods", "torchrun"});
  for (const auto &[missing, value] : kPods) {
    SCOPED_TRACE(missing);
    expectRefused(without(kPods, missing), {"PyTorchJob", missing});
  }
}

TEST(Launcher, FlagsWin) {
  LaunchFlags flags;
  flags.rank = 1;
  flags.worldSize = 2;
  flags.rendezvous = "[fe80::1]:0";
  const LaunchInfo wanted = {Launcher::Flags, 1, 2, 0, 1, "fe80::1", 0, 0};
  EXPECT_EQ(detected(kTorchrun, flags), wanted);
  flags.rank = 2;
  expectRefused({}, {"--rank 2", "--world-size 2"}, flags);
  flags.rank.reset();
  expectRefused({}, {"--rank (missing)"}, flags);
  LaunchFlags only;
  only.rendezvous = "host:1";
  expectRefused({}, {"--rendezvous host:1", "--rank"}, only);
  // Beside a launcher, --rendezvous alone replaces its host and port.
  EXPECT_EQ(detected(without(kTorchrun, "MASTER_PORT"), only).port, 1);
}

TEST(NodeList, Expands) {
  const auto names = [](std::string_view list) {
    return expandNodeList(list).take();
  };
  EXPECT_THAT(names("n[001-004,7],m3"),
              ElementsAre("n001", "n002", "n003", "n004", "n7", "m3"));
  EXPECT_THAT(names("localhost"), ElementsAre("localhost"));
  EXPECT_THAT(names("r[1-2]n[08-10]-ib"),
              ElementsAre("r1n08-ib", "r1n09-ib", "r1n10-ib", "r2n08-ib",
                          "r2n09-ib", "r2n10-ib"));
  EXPECT_THAT(names("a[0-65535]"), SizeIs(65536));
}

TEST(NodeList, RefusesWhatIsMalformed) {
  for (const char *list :
       {"", ",", "a,,b", "n[", "n]", "n[1", "n[]", "n[1-]", "n[3-1]", "n[1,]",
        "n[a]", "n[[1]]", "n[1]]", "n[0-65536]", "n[0-999][0-999]", "n[-1]"}) {
    SCOPED_TRACE(list);
    const auto names = expandNodeList(list);
    ASSERT_FALSE(names.isOk());
    EXPECT_THAT(names.status().message(), HasSubstr(list));
  }
}

TEST(Endpoints, Parse) {
  const auto [host, port] = parseEndpoint("node-1.example:65535").take();
  EXPECT_EQ(host, "node-1.example");
  EXPECT_EQ(port, 65535);
  EXPECT_EQ(describe(parseEndpoint("[::1]:80").take()), "[::1]:80");
  for (const char *text : {"", "host", "host:", ":1", "host:65536", "host:-1",
                           "host:1x", "::1:80", "[]:1", "[::1]"}) {
    EXPECT_FALSE(parseEndpoint(text).isOk()) << text;
  }
}

} // namespace
